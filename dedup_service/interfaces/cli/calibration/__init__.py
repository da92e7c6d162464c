"""The subcommands about quality: `label` pairs, `evaluate` verdicts, `calibrate` thresholds."""
