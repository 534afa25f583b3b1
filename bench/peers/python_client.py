"""The Python client under measurement. The benchmark starts it with the variables of a run.

Each line on stdin is a number of calls. For each line, it prints their median time in microseconds.
"""

import statistics
import sys
import time

from vscode_bridge import Client

PAYLOAD = {"prompt": "x" * 180}


def main() -> None:
    with Client() as client:
        for line in sys.stdin:
            times = []
            for _ in range(int(line)):
                begun = time.perf_counter()
                answer = client.request("vscode/chat", PAYLOAD)
                times.append(time.perf_counter() - begun)
                if answer != PAYLOAD:
                    sys.exit(f"another answer: {answer!r}")
            print(statistics.median(times) * 1e6, flush=True)


if __name__ == "__main__":
    main()
