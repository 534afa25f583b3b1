"""Does the usual work of an agent: runs a program, reads its error, repairs it, runs it again.

Run it from the repository. Its workspace is the directory for temporary files:

    bridge-daemon run --sandbox "${TMPDIR:-/tmp}" -- python3 examples/agent.py
"""

import sys

from vscode_bridge import BridgeError, agent

PROGRAM = """\
def mean(numbers):
    return sum(numbers) / len(number)


print("mean:", mean([1, 2, 6]))
"""


def main() -> int:
    place = agent.run("mktemp -d -p . agent-XXXXXX").content
    agent.run(f"cd {place}")
    try:
        agent.write("mean.py", PROGRAM)
        first = agent.run("python3 mean.py")
        print("exit code", first.exit_code, "and", first.content.splitlines()[-1])
        print(agent.run("grep -HnF 'len(number)' mean.py").content)
        agent.replace("mean.py", "len(number)", "len(numbers)")
        second = agent.run("python3 mean.py", on_output=lambda text: print(text, end=""))
        print("exit code", second.exit_code)
    finally:
        agent.run("cd ..")
        agent.rm(place, recursive=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BridgeError as error:
        sys.exit(f"agent.py: {error}")
