# Start-up file of a sandbox shell, used instead of ~/.bashrc, which it sources itself. It loads the builtin;
# builtin.c describes how the shell runs commands.

if ! enable -f "${BASH_SOURCE%/*}/builtin.so" __sb; then
    printf '%s\n' 'A sandbox needs a bash that can load builtins (as those of the usual distributions can),' \
        'and a state directory on a file system that is not mounted with noexec.'
    exit 1
fi
__sb_dir=$SANDBOX_DIR __sb_user='\u' __sb_machine='\H'
unset SANDBOX_DIR TMUX TMUX_PANE
# A confined shell cannot write this file; its launcher has done it.
{ printf '%s\n' "$$" >|"$__sb_dir/pid"; } 2>/dev/null
__sb prepare "$__sb_dir" "${__sb_user@P}" "${__sb_machine@P}" || exit
export PAGER=cat GIT_PAGER=cat MANPAGER=cat SYSTEMD_PAGER=cat

# The file `start` contains the directory and the environment.
{
    IFS= read -r -d '' __sb_field && cd -- "$__sb_field"
    while IFS= read -r -d '' __sb_field; do
        export "$__sb_field"
    done
} <"$__sb_dir/start"
unset OLDPWD __sb_field __sb_user __sb_machine __sb_dir

# Do not write to the user's history file, and keep the line that starts a command out of the history.
unset HISTFILE
HISTCONTROL=ignorespace
set +H

# It may fail or be interrupted; then the rest of this file does not run. Everything above is prepared for that,
# except for a replaced PROMPT_COMMAND.
[[ ! -r ~/.bashrc ]] || . ~/.bashrc || :

# Again, because ~/.bashrc may have changed them.
unset HISTFILE
HISTCONTROL=ignorespace${HISTCONTROL:+:$HISTCONTROL}
set +H
__sb hold
