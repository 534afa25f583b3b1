# Start-up file of a sandbox shell, used in place of ~/.bashrc, which it reads itself. How the shell runs
# commands is told in builtin.c, which is loaded here.

if ! enable -f "${BASH_SOURCE%/*}/builtin.so" __sb; then
    printf '%s\n' 'A sandbox needs a bash that can load builtins (as those of the usual distributions can),' \
        'and a state directory on a file system that is not mounted with noexec.'
    exit 1
fi
__sb_dir=$SANDBOX_DIR __sb_user='\u' __sb_host='\H'
unset SANDBOX_DIR TMUX TMUX_PANE
# A confined shell cannot write this; its launcher has.
{ printf '%s\n' "$$" >|"$__sb_dir/pid"; } 2>/dev/null
__sb prepare "$__sb_dir" "${__sb_user@P}" "${__sb_host@P}" || exit
export PAGER=cat GIT_PAGER=cat MANPAGER=cat SYSTEMD_PAGER=cat

# The file `start` holds the directory and the environment.
{
    IFS= read -r -d '' __sb_field && cd -- "$__sb_field"
    while IFS= read -r -d '' __sb_field; do
        export "$__sb_field"
    done
} <"$__sb_dir/start"
unset OLDPWD __sb_field __sb_user __sb_host __sb_dir

# A person's history file is not ours to fill, and what is typed to start a command is not history.
unset HISTFILE
HISTCONTROL=ignorespace
set +H

# It may fail, or be interrupted: then the rest is not reached. All but a replaced PROMPT_COMMAND is prepared
# for that.
[[ ! -r ~/.bashrc ]] || . ~/.bashrc || :

# Once more, as it may have set them.
unset HISTFILE
HISTCONTROL=ignorespace${HISTCONTROL:+:$HISTCONTROL}
set +H
__sb hold
