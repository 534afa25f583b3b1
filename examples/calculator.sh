#!/bin/sh
# A stand-in for a language model: answers a question that holds a sum such as 2+2.
# The question comes on stdin, the answer goes to stdout, as --chat-command wants it.
sum=$(grep -oE '[0-9]+ *\+ *[0-9]+' | head -n 1)
if [ -n "$sum" ]; then
    echo "$sum = $(($sum))"
else
    echo "I can only add two numbers."
fi
