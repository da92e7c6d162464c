"""The one signal we send, so that counting, logging and drawing can watch without being in the way."""

__all__ = ["page_judged"]

page_judged = object()
"""Sent after each verdict with `verdict` (a dict, as in `request.meta["neardup"]`), `request` and `response`."""
