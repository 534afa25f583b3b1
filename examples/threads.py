"""Asks questions from four threads at once, over one connection.

Run it from the repository:

    bridge-daemon run --chat-command ./examples/calculator.sh -- python3 examples/threads.py
"""

from concurrent.futures import ThreadPoolExecutor

import vscode_bridge


def ask(number: int) -> str:
    return vscode_bridge.chat(f"What is {number}+{number}?")


with ThreadPoolExecutor(max_workers=4) as pool:
    for answer in pool.map(ask, range(1, 9)):
        print(answer)
