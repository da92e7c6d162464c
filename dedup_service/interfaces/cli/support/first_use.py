"""Says on stderr, once and before the work, that the first run compiles."""

import click


def echo_compile_notice() -> None:
    """Print that numeric loops are being compiled, if they are; numba is imported only now."""
    from dedup_service.runtime.first_use import compile_notice

    if (notice := compile_notice()) is not None:
        click.echo(f"twinsieve: {notice}", err=True)
