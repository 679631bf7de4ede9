"""A report of a partition: one page with pictures of its segments, times, sizes, transactions and damage.

It needs matplotlib (`pip install "cordwood[report]"`).

>>> from cordwood.report import Report
>>> report = Report("tests/golden/01-plain/orders-0")
>>> page = report.to_html()
>>> page.startswith("<!DOCTYPE html>"), "http" in page.replace("http://www.w3.org/", "")
(True, False)
"""

from cordwood.report.report import Report

__all__ = ["Report"]
