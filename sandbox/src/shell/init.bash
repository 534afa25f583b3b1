# Start-up file of a sandbox shell, used in place of ~/.bashrc, which it reads itself.
#
# How a command runs: the owner writes its text to the file `command`, two secrets to the pipe on
# descriptor 62 ("S;number;nonce" and "E;number;nonce", 55 bytes each, because bash takes a counted read
# from a pipe in one go and a line byte by byte), and types ` eval "$__sb"`. __sb_begin takes the first
# and prints it as the start marker; the text is evaluated at top level, as if typed; __sb_finish takes
# the second and prints it as the end marker. While the text runs, the second lies in the pipe, in no
# variable; descriptor 62 is closed for it, and the copy that bash keeps for itself is not inherited by
# programs. The pipe has no name by then.
#
# When Ctrl-C throws bash back to its prompt, the rest of the typed line is not reached. Therefore
# __sb_prompt is the last entry of PROMPT_COMMAND; `PROMPT_COMMAND=…` replaces only the first. The
# key sequence bound below is for the case that a text has emptied the whole array.
#
# Known limit: when line editing is turned off (`set +o emacs`) by something that a text calls, bash reads
# the rest of the text from the terminal. The owner sees that and interrupts it. Where the text itself
# says so, it is a file that bash reads, which has no such effect.
#
# Options and traps of the user must neither see a nonce nor disturb us: with any of them set, the two
# functions are called by __sb_quietly. What `set -x` or a DEBUG trap prints before __sb_begin lies before
# the start marker and so in no command's output; before __sb_finish it would lie inside, therefore that is
# redirected. Markers go to /dev/tty, because the shell's own output may have been redirected.
#
# Bash is slow, and this runs with every command. Nothing here starts a process. A function is copied each
# time that it is called, so the two hold only what is needed always, and the rest has functions of its own.
# Whether there is something in the pipe is asked before it is read, because with a time limit bash blocks
# and unblocks signals at each byte. mapfile would take a file in half the time of read, but with it shells
# were seen to hang, out of step with the pipe by two bytes; why is not known. A counted read takes a whole
# file without an IFS of its own, which would cost as much as the reading.

# Takes the next start secret and prints the marker; then takes the text.
__sb_begin() {
    builtin read -t 0 -u 62 && builtin read -r -N 55 -u 62 __sb_line && [[ $__sb_line == S* ]] ||
        __sb_skip || builtin return 0
    __sb_seq=${__sb_line:1:21} __sb_token= __sb_code= __sb_said= __sb_fresh=
    builtin printf '\e]7717;%s\a' "$__sb_line" >/dev/tty
    builtin read -r -N 99999999 __sb_text <"$__sb_dir/command"
    ((${#__sb_text} > 4096)) || builtin history -s -- "$__sb_text"
    builtin return "${__sb_status:-0}"
}

# Tells the end of a command whose status is __sb_code, if there is one that was not told.
__sb_finish() {
    __sb_status=$__sb_code __sb_field=$PWD
    PROMPT_COMMAND[7717]=$__sb_hook
    # A Ctrl-C may hit us here; what was taken from the pipe is then used at the prompt. If it hits
    # the reading itself, the secret is lost, and the owner sends another before it presses the key.
    [[ ${__sb_token-} || ! ${__sb_seq-} ]] ||
        { builtin read -t 0 -u 62 && builtin read -r -N 55 -u 62 __sb_line &&
            [[ $__sb_line == "E$__sb_seq"* ]] && __sb_token=$__sb_line; } || __sb_skip_to_end
    [[ ${__sb_token-} ]] || builtin return 0
    # What the shell would run is what it remembers; it forgets when PATH changes.
    __sb_python=${BASH_CMDS[$__sb_python_name]-}
    [[ -x $__sb_python ]] || __sb_find_python
    [[ $__sb_field$__sb_python != *[[:cntrl:]\;%]* ]] || __sb_encode_both
    __sb_said=$__sb_token\;$__sb_code\;$!\;$__sb_who\;$__sb_field\;$__sb_python
    # A signal can interrupt the writing too. A second copy of the marker does no harm.
    builtin printf '\e]7717;%s\a' "$__sb_said" >/dev/tty || __sb_say || __sb_say || builtin return 0
    __sb_seq= __sb_token= __sb_code= __sb_fresh=1
}

__sb_say() {
    builtin printf '\e]7717;%s\a' "$__sb_said" >/dev/tty
}

# Calls one of ours with the options off that would show it, end it, or hand a trap down to it. What it
# calls has no trap any more; this function itself may still have one.
__sb_quietly() {
    builtin local -
    builtin set +vxTEeu
    "$1"
}

# Passes over ends that nobody took.
__sb_skip() {
    while builtin read -t 0 -u 62 && builtin read -r -N 55 -u 62 __sb_line; do
        [[ $__sb_line != S* ]] || builtin return 0
    done
    __sb_text=
    builtin return 1
}

# Passes over what does not belong to the command that has ended.
__sb_skip_to_end() {
    while [[ ! $__sb_token ]] && builtin read -t 0 -u 62 && builtin read -r -N 55 -u 62 __sb_line; do
        [[ $__sb_line != "E$__sb_seq"* ]] || __sb_token=$__sb_line
    done
}

__sb_find_python() {
    for __sb_python_name in python python3; do
        builtin hash "$__sb_python_name" 2>/dev/null && builtin break
    done
    __sb_python=${BASH_CMDS[$__sb_python_name]-}
}

__sb_encode_both() {
    __sb_encode
    builtin local __sb_cwd=$__sb_field
    __sb_field=$__sb_python
    __sb_encode
    __sb_python=$__sb_field __sb_field=$__sb_cwd
}

# At every prompt: reports a command whose end was not reached, or remembers the status of what a
# person has typed, so that `$?` in the next command is right.
__sb_prompt() {
    if [[ ${__sb_seq-} ]]; then
        # Called again after a Ctrl-C has hit us, it knows the status from the first time.
        __sb_code=${__sb_code:-$1}
        __sb_quietly __sb_finish
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
    builtin local __sb_last=$?
    if [[ ! ${__sb_seq-} ]]; then
        [[ ! ${__sb_said-} ]] || __sb_say
    elif [[ ${__sb_token-} ]] || builtin read -t 0 -u 62 2>/dev/null; then
        __sb_prompt "$__sb_last"
    fi
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

readonly __sb_hook='case ${__sb_fresh-} in 1) __sb_fresh= ;; *) __sb_prompt $? >/dev/null 2>&1 ;; esac'
# One line, because `set -v` prints each line when it is read.
__sb='if case $- in *[vxTEeu]*) __sb_quietly __sb_begin ;; *) __sb_begin ;; esac; '
__sb+='then eval "$__sb_text" 62<&-; else eval "$__sb_text" 62<&-; fi; '
__sb+='{ __sb_code=${__sb_code:-$?}; case $- in *[vxTEeu]*) __sb_quietly __sb_finish ;; *) __sb_finish ;; esac; } '
__sb+='>/dev/null 2>&1'
readonly __sb
__sb_who='\u;\H'
readonly __sb_who=${__sb_who@P}
readonly -f __sb_begin __sb_finish __sb_say __sb_quietly __sb_skip __sb_skip_to_end __sb_find_python
readonly -f __sb_encode_both __sb_encode __sb_prompt __sb_recover

__sb_dir=$SANDBOX_DIR __sb_python_name=python
unset SANDBOX_DIR TMUX TMUX_PANE
# Only for reading, because a confined shell may not write there; the owner holds the other end.
exec 62<"$__sb_dir/pipe"
# A confined shell cannot write this either; its launcher has.
{ printf '%s\n' "$$" >|"$__sb_dir/pid"; } 2>/dev/null
__sb_begin
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
# The key with which the owner clears the line before it types.
bind '"\C-^": kill-whole-line' 2>/dev/null
bind -m vi-insert '"\C-^": kill-whole-line' 2>/dev/null
bind -m vi-command '"\C-^": "cc"' 2>/dev/null
PROMPT_COMMAND[7717]=$__sb_hook
