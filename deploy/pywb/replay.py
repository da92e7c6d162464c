"""Replay captures of an archive with pywb: a script for pywb's own environment, which imports nothing of this project.

    python deploy/pywb/replay.py ARCHIVE INDEX TIMESTAMP URL [TIMESTAMP URL]...

For each capture, prints one line of JSON: the HTTP status, the values of the archived header X-Visit, the body in
base 64, and the timestamp of the capture that was replayed, as Memento-Datetime says.
"""

from gevent import monkey

monkey.patch_all()

import base64  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402

from pywb.apps.frontendapp import FrontEndApp  # noqa: E402
from werkzeug.test import Client  # noqa: E402


def main() -> None:
    """Serve the archive as one collection and fetch each capture as it was stored (`id_`)."""
    archive, index, *captures = sys.argv[1:]
    collection = {"index": index, "archive_paths": archive.rpartition("/")[0] + "/"}
    application = FrontEndApp(config_file=None, custom_config={"collections": {"kept": collection}})
    client = Client(application)
    for timestamp, url in zip(captures[::2], captures[1::2], strict=True):
        response = client.get(f"/kept/{timestamp}id_/{url}")
        found = {
            "status": response.status_code,
            "visit": response.headers.get("X-Visit") or response.headers.get("X-Archive-Orig-X-Visit"),
            "captured": response.headers.get("Memento-Datetime"),
            "body": base64.b64encode(response.get_data()).decode(),
        }
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
