# Start-up file of a sandbox shell, used in place of ~/.bashrc, which it reads itself.
#
# How a command runs: the owner writes its text to the file `command`, two secret lines to the pipe
# on descriptor 62 ("S;number;nonce" and "E;number;nonce", 56 bytes each, because bash takes a counted
# read from a pipe in one go and a line byte by byte), and types ` eval "$__sb"`. Whether a line is
# there is asked before it is read: with a time limit, bash blocks and unblocks signals at each byte.
# __sb_begin
# takes the S line and prints it as the start marker; the text is evaluated at top level, as if typed;
# __sb_end takes the E line and prints it as the end marker. While the text runs, the E line lies in
# the pipe, in no variable; descriptor 62 is closed for it, and the copy that bash keeps for itself is
# not inherited by programs. The pipe has no name by then.
#
# When Ctrl-C throws bash back to its prompt, the rest of the typed line is not reached. Therefore
# __sb_end is also the last entry of PROMPT_COMMAND; `PROMPT_COMMAND=…` replaces only the first. The
# key sequence bound below is for the case that a text has emptied the whole array.
#
# Known limit: when line editing is turned off (`set +o emacs`) by something that a text calls, bash reads
# the rest of the text from the terminal. The owner sees that and interrupts it. Where the text itself
# says so, it is a file that bash reads, which has no such effect.
#
# `local -` and the second function keep `set -x`, `set -v` and DEBUG traps of the user from seeing a
# nonce. What they print of __sb_begin lies before the start marker and so in no command's output;
# __sb_end must be quiet and is therefore redirected. Markers go to /dev/tty, because the shell's own
# output may have been redirected. Nothing here starts a process, and there are few words, because bash takes microseconds for each.

__sb_begin() {
    [[ $- != *[vxTEeu]* ]] || { builtin local -; builtin set +vxTEeu; }
    __sb_text=
    __sb_announce
    builtin return "${__sb_status:-0}"
}

# Takes the next S line and prints the start marker; then takes the text, if there is one.
__sb_announce() {
    builtin local __sb_line
    while builtin read -t 0 -u 62 && builtin read -r -N 56 -u 62 __sb_line; do
        [[ $__sb_line == S* ]] || continue
        __sb_seq=${__sb_line:1:21} __sb_token= __sb_code= __sb_said=
        builtin printf '\e]7717;%s\a' "${__sb_line:0:55}" >/dev/tty
        IFS= builtin read -r -d '' __sb_text <"$__sb_dir/command"
        ((${#__sb_text} > 4096)) || builtin history -s -- "$__sb_text"
        break
    done
}

__sb_end() {
    # Called again after a Ctrl-C has hit us, it knows the status from the first time.
    __sb_status=${__sb_code:=${1-$?}}
    [[ $- != *[vxTEeu]* ]] || { builtin local -; builtin set +vxTEeu; }
    __sb_finish
    __sb_fresh=1
    builtin return 0
}

# At every prompt: reports a command whose end was not reached, or remembers the status of what a
# person has typed, so that `$?` in the next command is right.
__sb_prompt() {
    if [[ ${__sb_seq-} ]]; then
        __sb_end "$1"
    elif [[ ${__sb_fresh-} ]]; then
        __sb_fresh=
    else
        __sb_status=$1
    fi
    builtin return 0
}

# Bound to a key that the owner presses when an interrupted command reports nothing. Inside a
# running text descriptor 62 is closed, so that pressing it there does nothing. A report that was
# made is made again: with a Ctrl-C the kernel throws away what the terminal has not delivered yet.
__sb_recover() {
    builtin local __sb_last=$? __sb_line
    if [[ ! ${__sb_seq-} ]]; then
        __sb_line=${__sb_said-}
        [[ ! $__sb_line ]] || __sb_say
    elif [[ ${__sb_token-} ]] || builtin read -t 0 -u 62 2>/dev/null; then
        __sb_prompt "$__sb_last"
    fi
}

__sb_finish() {
    builtin local __sb_line "__sb_field=$PWD" __sb_python "__sb_background=$!"
    PROMPT_COMMAND[7717]=$__sb_hook
    # A Ctrl-C may hit us here; what was taken from the pipe is then used at the prompt. If it hits
    # the reading itself, the line is lost, and the owner sends another before it presses the key.
    while [[ ${__sb_seq-} && ! ${__sb_token-} ]] && builtin read -t 0 -u 62 &&
        builtin read -r -N 56 -u 62 __sb_line; do
        [[ $__sb_line != "E$__sb_seq"* ]] || __sb_token=${__sb_line:0:55}
    done
    [[ ${__sb_token-} ]] || builtin return 0
    # What the shell would run is what it remembers; it forgets when PATH changes.
    [[ -x ${BASH_CMDS[python]-} ]] || builtin hash python 2>/dev/null ||
        [[ -x ${BASH_CMDS[python3]-} ]] || builtin hash python3 2>/dev/null
    __sb_python=${BASH_CMDS[python]-${BASH_CMDS[python3]-}}
    if [[ $__sb_field$__sb_python == *[[:cntrl:]\;%]* ]]; then
        __sb_encode
        __sb_line=$__sb_field __sb_field=$__sb_python
        __sb_encode
        __sb_python=$__sb_field __sb_field=$__sb_line
    fi
    __sb_line="$__sb_token;$__sb_status;$__sb_background;$__sb_who;$__sb_field;$__sb_python"
    __sb_said=$__sb_line
    # A signal can interrupt the writing too. A second copy of the marker does no harm.
    if __sb_say || __sb_say || __sb_say; then
        __sb_seq= __sb_token= __sb_code=
    fi
}

__sb_say() {
    builtin printf '\e]7717;%s\a' "$__sb_line" >/dev/tty
}

# Percent-encodes in __sb_field what would end or split a marker.
__sb_encode() {
    builtin local __sb_out= __sb_char __sb_i
    for ((__sb_i = 0; __sb_i < ${#__sb_field}; __sb_i++)); do
        __sb_char=${__sb_field:__sb_i:1}
        case $__sb_char in
            [$'\001'-$'\037'$'\177'\;%]) builtin printf -v __sb_char '%%%02X' "'$__sb_char" ;;
        esac
        __sb_out+=$__sb_char
    done
    __sb_field=$__sb_out
}

readonly __sb_hook='__sb_prompt $? >/dev/null 2>&1'
readonly __sb='if __sb_begin; then { eval "$__sb_text"; } 62<&-; else { eval "$__sb_text"; } 62<&-; fi; { __sb_end; } >/dev/null 2>&1'
__sb_who='\u;\H'
readonly __sb_who=${__sb_who@P}
readonly -f __sb_begin __sb_announce __sb_end __sb_prompt __sb_recover __sb_finish __sb_say __sb_encode

__sb_dir=$SANDBOX_DIR
unset SANDBOX_DIR TMUX TMUX_PANE
# Only for reading, because a confined shell may not write there; the owner holds the other end.
exec 62<"$__sb_dir/pipe"
# A confined shell cannot write this either; its launcher has.
{ printf '%s\n' "$$" >|"$__sb_dir/pid"; } 2>/dev/null
__sb_announce
export PAGER=cat GIT_PAGER=cat MANPAGER=cat SYSTEMD_PAGER=cat

# The file `start` holds the directory and the environment.
{
    IFS= read -r -d '' __sb_field && cd -- "$__sb_field"
    while IFS= read -r -d '' __sb_field; do
        export "$__sb_field"
    done
} <"$__sb_dir/start"
unset OLDPWD __sb_field

[[ ! -r ~/.bashrc ]] || . ~/.bashrc

# A person's history file is not ours to fill; what we type to start a command is not history at all.
unset HISTFILE
HISTCONTROL=ignorespace${HISTCONTROL:+:$HISTCONTROL}
set +H
bind -x '"\e[7717~": __sb_recover' 2>/dev/null
PROMPT_COMMAND[7717]=$__sb_hook
