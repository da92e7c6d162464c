"""What the messages look like: keys, headers and values of every topic, as bytes and back (docs/topics.md).

Nothing here knows a broker. Each file is one message: `page` (read), `log_record` (written and read),
`verdict` and `stats` (written; read by tools), `dead_letter`; `keys` and `headers` are those of all of them.
Rules of all of them: a field that is not known is left alone; a field may be added where ignoring it changes no
verdict; anything else is a new version, which older readers refuse.
"""
