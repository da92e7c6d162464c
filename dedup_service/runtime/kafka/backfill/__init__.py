"""Pages of files added to the log of a running service, each once: progress, pace, and the transactions.

`progress` says how far a backfill is in each file, `pace` leaves the deciding step a share of its time, and `backfill`
writes. What the service writes about such pages is in `steps.backfilled`; docs/adr/0033-backfill.md has the decisions.
"""
