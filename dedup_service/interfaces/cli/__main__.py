"""Run the command line as a module."""

from dedup_service.interfaces.cli.main import main

if __name__ == "__main__":
    main()
