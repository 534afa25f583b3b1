"""Shows a message, asks two questions in one conversation, and prints the answers.

Run it from the repository:

    bridge-daemon run --chat-command ./examples/calculator.sh -- python3 examples/ask.py
"""

import sys

import vscode_bridge


def main() -> int:
    talk = vscode_bridge.Conversation()
    try:
        vscode_bridge.show_message("A script asks two questions")
        for question in ("What is 2+2?", "And 4+38?"):
            print(question, "->", vscode_bridge.chat(question, conversation=talk))
        for message in vscode_bridge.get_chat_history(talk):
            print(f"{message['role']:>9}: {message['content']}")
    except vscode_bridge.BridgeError as error:
        print(f"ask.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
