"""The stub of `cordwood._core`, one file for each subject.

These modules exist for type checkers and editors only and cannot be imported at run time. `cordwood._core` has all
their classes and functions.
"""
