"""Messages of every topic as bytes and back: keys, headers and values (docs/topics.md).

Nothing here knows a broker. `page` is read; it refuses oversized values and makes dead letters of rejected
records. `log_record` is written and read; `verdict` has verdicts and stats, which are written, and read by
tools; `headers` has the keys and headers of all of them.
Compatibility: unknown fields are ignored; a field may be added if ignoring it changes no verdict; any other
change is a new version, which older readers refuse.
"""
