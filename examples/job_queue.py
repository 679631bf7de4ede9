"""A durable job queue with asyncio: jobs survive a crash and a power loss, and each is done at least once, in order.

    python examples/job_queue.py DIRECTORY JOB...

Submits the jobs, does all that are not done yet, and ends. DIRECTORY is a partition, such as jobs-0, and is created.
"""

import asyncio
import sys

import cordwood as cw

SETTINGS = cw.LogConfig(retention_ms=7 * 86_400_000)  # a job is deleted after a week, done or not


async def submit(writer: cw.LogWriter, job: str) -> int:
    """Return the number of the job once it is on the disk. Tasks that submit at the same time share a flush."""
    appended = await writer.append_async(job)
    return appended.first_offset


async def work(log: cw.Log, worker: str, end: int) -> None:
    """Do the jobs up to a number, from the first that was not done."""
    position = log.position(worker)
    start = max(position.offset or 0, log.log_start_offset)
    if start >= end:
        return
    with log.follow(start) as jobs:
        async for job in jobs:
            print("done", job.offset, (job.value or b"").decode())  # the work itself
            await position.commit_async(job.offset + 1)  # a crash before this repeats the job
            if job.offset + 1 >= end:
                break


async def main(directory: str, *jobs: str) -> None:
    """Submit jobs, and do them."""
    with cw.LogWriter(directory, config=SETTINGS) as writer:
        numbers = await asyncio.gather(*(submit(writer, job) for job in jobs))
        print("submitted", *numbers)
        await work(cw.Log(directory), "worker", writer.log_end_offset)
        writer.apply_retention()


if __name__ == "__main__":
    match sys.argv[1:]:
        case [directory, *jobs]:
            asyncio.run(main(directory, *jobs))
        case _:
            sys.exit(__doc__)
