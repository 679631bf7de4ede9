"""An outbox with transactions: the events of an order are delivered together, or none of them is.

    python examples/outbox.py DIRECTORY ORDER...

For each order two events are written in one transaction. An order that is no number fails in the middle of it: its
events are never delivered. A relay reads the outbox, and delivers each event at least once. DIRECTORY is a partition,
such as outbox-0, and is created.
"""

import sys

import cordwood as cw


def place(writer: cw.LogWriter, order: str) -> None:
    """Write the events of an order; an exception in the block aborts all of them."""
    with writer.transaction("orders") as transaction:
        transaction.append(f"order {order} placed", key=order)
        amount = 7 * int(order)
        transaction.append(f"invoice of {amount}", key=order)


def relay(log: cw.Log) -> None:
    """Deliver the events of committed transactions that were not delivered yet."""
    position = log.position("relay")
    with log.follow(position.offset, timeout=0, isolation_level="read_committed") as events:
        for event in events:
            print("deliver", event.offset, (event.value or b"").decode())  # to a queue, a mail server, …
            position.commit(events.next_offset)


def main(directory: str, *orders: str) -> None:
    """Place the orders, and deliver their events."""
    with cw.LogWriter(directory) as writer:
        for order in orders:
            try:
                place(writer, order)
            except ValueError as error:
                print("failed", error, file=sys.stderr)
        relay(cw.Log(directory))


if __name__ == "__main__":
    match sys.argv[1:]:
        case [directory, *orders]:
            main(directory, *orders)
        case _:
            sys.exit(__doc__)
