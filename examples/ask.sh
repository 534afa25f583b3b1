#!/bin/sh
# Shows a message, asks a question and prints the answer.
# Run it from the repository:
#   bridge-daemon run --chat-command ./examples/calculator.sh -- ./examples/ask.sh "What is 2+2?"
question=${1:-What is 2+2?}
bridge-client show-message "asking: $question"
bridge-client chat "$question"
