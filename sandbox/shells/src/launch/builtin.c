/* The builtin `__sb`, with which a sandbox shell runs its commands and reports how they end. init.bash loads it.
 *
 * How a command runs: the owner writes its text to the file `command` and two nonces to the pipe
 * ("S;number;digits" and "E;number;digits", of a fixed length), and presses a key, on which this builtin enters the
 * line ` __sb`. The call takes both nonces, prints the first as the start marker, evaluates the text as `eval` would,
 * at top level, and prints the second as the end marker, with a report about the shell. The nonces are in no
 * variable, and no program that the shell starts inherits the pipe, which has no name by then.
 *
 * When Ctrl-C throws bash back to its prompt, the evaluation does not return here. But bash then runs the unwind
 * frame, which calls `leave`. `__sb prompt` is an entry of PROMPT_COMMAND, the last one, since `PROMPT_COMMAND=...`
 * replaces only the first. Two more keys are requests of the owner: on one the builtin reports the last end again,
 * on the other it writes the environment of programs to a file. That file was opened at the start; for a confined
 * shell the launcher opened it. No command is run for either.
 *
 * All this could be written in bash, and was: it took most of the time that bash needs for a command, and every
 * option and trap of the user had to be prevented from showing or disturbing it. Now users can see nothing of it but
 * the name, before the start marker, so it is in no command's output.
 *
 * Known limit: when something that a text calls turns line editing off (`set +o emacs`), bash reads the rest of the
 * text from the terminal. The owner notices that and interrupts it. If the text itself turns line editing off, the
 * owner puts it into a file that bash sources, where this does not happen. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Declarations of bash. All of them are part of its interface for loadable builtins. */
typedef struct word_desc {
    char *word;
    int flags;
} WORD_DESC;

typedef struct word_list {
    struct word_list *next;
    WORD_DESC *word;
} WORD_LIST;

struct builtin {
    char *name;
    int (*function)(WORD_LIST *);
    int flags;
    char *const *long_doc;
    const char *short_doc;
    char *handle;
};

enum { BUILTIN_ENABLED = 1, SEVAL_NOHIST = 4, ASS_FORCE = 32 };
enum { EXECUTION_SUCCESS = 0, EXECUTION_FAILURE = 1, EX_USAGE = 258 };

extern int last_command_exit_value; /* $? */
extern pid_t last_asynchronous_pid; /* $! */
extern int remember_on_history;
extern void *this_shell_builtin; /* the builtin that ran last; `exit` checks it */

extern void *xmalloc(size_t);
extern void *xrealloc(void *, size_t);
extern int evalstring(char *text, const char *name, int flags); /* frees the text */
extern char *get_string_value(const char *variable);
extern void *bind_variable(const char *name, char *value, int flags);
extern void *bind_array_variable(char *name, intmax_t index, char *value, int flags);
extern int check_add_history(char *line, int force);
extern void *save_pipestatus_array(void);
extern void restore_pipestatus_array(void *); /* takes ownership of its argument */
extern void array_dispose(void *);
extern char *find_user_command(const char *program);
extern void begin_unwind_frame(char *name);
extern void add_unwind_protect(int (*cleanup)(void *), void *argument);
extern void run_unwind_frame(char *name);
extern void builtin_error(const char *format, ...);
extern struct builtin *builtin_address_internal(char *name, int disabled_too);
extern int unbind_func(const char *name);
extern void maybe_make_export_env(void);
extern char **export_env;
extern int remove_alias(const char *name);

extern int rl_end, rl_point;
extern void *rl_get_keymap_by_name(const char *name);
extern int rl_bind_key_in_map(int key, int (*function)(int, int), void *keymap);
extern int rl_bind_keyseq_in_map(const char *keys, int (*function)(int, int), void *keymap);
extern int rl_delete_text(int from, int to);
extern int rl_insert_text(const char *text);
extern int rl_newline(int count, int key);
extern int rl_stuff_char(int key); /* inserts a key before the next typed one */
extern void rl_cleanup_after_signal(void);
extern void throw_to_top_level(void); /* discards the line being read, as Ctrl-C does */
extern char *current_prompt_string, *ps1_prompt; /* equal at the prompt for a new command */

enum {
    HIGH_FD = 1000,     /* above the descriptors that scripts close as a precaution */
    LOW_FD = 10,        /* for shells with a low limit on descriptors */
    NONCE_LENGTH = 55,  /* in the pipe: "S;", 20 digits, ";", 32 digits */
    PREFIX_LENGTH = 23, /* the part before the 32 digits */
    HOOK_INDEX = 7717,
    RUN_KEY = 0x1e,     /* Ctrl-^ */
    HISTORY_MAX = 4096,
    LONGEST_DIRECTORY = 16 * 1024, /* half of the longest marker that the recorder accepts */
};
static char hook[] = "__sb prompt";
static char name[] = "__sb"; /* of the builtin, and of its unwind frame */

static pid_t shell; /* the only process that may print markers: a subshell has a copy of all this */
static int pipe_fd = -1, terminal = -1, exports = -1;
static char *directory, *user, *machine;

/* The nonces of the latest command; empty if there is none. */
static char start_nonce[NONCE_LENGTH + 1], end_nonce[NONCE_LENGTH + 1];
static char ahead[NONCE_LENGTH + 1]; /* the start nonce of the next command, if it was read too early */
static int is_running;    /* a start was reported, and its end was not */
static int is_evaluating; /* a text is being evaluated */
static int code = -1;     /* the exit code of the command, once it is known */

static int status;        /* the value of $? for the next text */
static int is_our_status; /* $? at the prompt comes from the builtin, not from a typed command */
/* State that a text leaves to the next one, and that running this builtin would overwrite. */
static struct {
    char *last_word; /* $_ */
    void *pipestatus, *builtin;
} left;

/* Prints to the terminal, wherever the shell's own output is redirected. Signals are blocked, so that it is
 * written in one piece: other programs may print at the same time. */
static int print(const char *bytes)
{
    size_t length = strlen(bytes);
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    while (length > 0) {
        ssize_t written = write(terminal, bytes, length);
        if (written <= 0)
            break;
        bytes += written;
        length -= written;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return length == 0;
}

/* Takes the next nonce from the pipe. */
static int take(char *nonce)
{
    if (ahead[0]) {
        memcpy(nonce, ahead, sizeof ahead);
        ahead[0] = 0;
        return 1;
    }
    ssize_t length;
    do
        length = read(pipe_fd, nonce, NONCE_LENGTH);
    while (length < 0 && errno == EINTR);
    nonce[length == NONCE_LENGTH ? NONCE_LENGTH : 0] = 0;
    return length == NONCE_LENGTH;
}

static int is_end_of(const char *nonce, const char *start)
{
    return nonce[0] == 'E' && memcmp(nonce + 1, start + 1, PREFIX_LENGTH - 1) == 0;
}

/* Reports the start of the next command: the last one that has both nonces. Earlier nonces belong to commands that the
 * owner has replaced or given up. */
static int begin(void)
{
    char start[NONCE_LENGTH + 1] = "", nonce[NONCE_LENGTH + 1];
    int is_found = 0;
    while (take(nonce)) {
        if (nonce[0] == 'S')
            memcpy(start, nonce, sizeof nonce);
        if (!is_end_of(nonce, start))
            continue;
        memcpy(start_nonce, start, sizeof start);
        memcpy(end_nonce, nonce, sizeof nonce);
        is_found = 1;
    }
    if (!is_found)
        return 0;
    is_running = 1;
    code = -1;
    char marker[NONCE_LENGTH + 10];
    snprintf(marker, sizeof marker, "\033]7717;%s\a", start_nonce);
    print(marker);
    return 1;
}

/* Returns a copy in which bytes that would end or split a marker are percent-encoded. */
static char *encoded(const char *field)
{
    char *copy = xmalloc(3 * strlen(field) + 1), *to = copy;
    for (const unsigned char *from = (const unsigned char *)field; *from; from++)
        if (*from < ' ' || *from == 127 || *from == ';' || *from == '%')
            to += sprintf(to, "%%%02X", *from);
        else
            *to++ = *from;
    *to = 0;
    return copy;
}

/* Returns the path of the Python that the shell would run, or an empty string. Searches again when PATH has changed,
 * when the one found is gone, and as long as there is none. */
static const char *python(void)
{
    static char *searched, *found;
    const char *path = get_string_value("PATH");
    if (!path)
        path = "";
    if (!searched || !found || strcmp(searched, path) != 0 || access(found, X_OK) != 0) {
        free(searched);
        free(found);
        searched = found = NULL; /* Ctrl-C may abort the search */
        found = find_user_command("python");
        if (!found)
            found = find_user_command("python3");
        searched = strdup(path);
    }
    return found && found[0] == '/' ? found : "";
}

/* Returns the working directory, encoded, as PWD names it, unless a command has changed PWD without changing the
 * directory, or PWD means another directory to other processes (/proc/self). Empty if it is too long for a marker. */
static char *working_directory(void)
{
    const char *pwd = get_string_value("PWD");
    struct stat named, here;
    int is_right = pwd && pwd[0] == '/' && strncmp(pwd, "/proc/", 6) != 0 && stat(pwd, &named) == 0 &&
                   stat(".", &here) == 0 && named.st_dev == here.st_dev && named.st_ino == here.st_ino;
    char *path = is_right ? NULL : getcwd(NULL, 0);
    char *copy = encoded(path ? path : pwd ? pwd : "");
    free(path);
    if (strlen(copy) > LONGEST_DIRECTORY)
        copy[0] = 0;
    return copy;
}

/* Reports the end of the command, which has ended with `code`, for the first time or again. */
static void report_end(void)
{
    /* If the owner believes that the end nonce is lost, it sends another one; then only that one counts. */
    char nonce[NONCE_LENGTH + 1];
    while (take(nonce)) {
        if (nonce[0] == 'S') {
            memcpy(ahead, nonce, sizeof nonce);
            break;
        }
        if (is_end_of(nonce, start_nonce))
            memcpy(end_nonce, nonce, sizeof nonce);
    }
    if (!end_nonce[0])
        return;
    char pid[16] = "";
    if (last_asynchronous_pid > 0)
        snprintf(pid, sizeof pid, "%ld", (long)last_asynchronous_pid);
    char *cwd = working_directory(), *interpreter = encoded(python()), *marker;
    if (asprintf(&marker, "\033]7717;%s;%d;%s;%s;%s;%s;%s\a", end_nonce, code, pid, user, machine, cwd,
                 interpreter) >= 0) {
        is_running = !print(marker);
        free(marker);
    }
    free(cwd);
    free(interpreter);
}

/* Reads the text of the command: the content of the file up to a NUL. */
static char *command(void)
{
    char *path;
    if (asprintf(&path, "%s/command", directory) < 0)
        return NULL;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        builtin_error("%s: %s", path, strerror(errno));
        free(path);
        return NULL;
    }
    size_t room = 4096, have = 0;
    ssize_t more;
    char *text = xmalloc(room);
    while ((more = read(file, text + have, room - have)) > 0 || (more < 0 && errno == EINTR)) {
        if (more > 0 && memchr(text + have, 0, more))
            break;
        have += more > 0 ? more : 0;
        if (have == room)
            text = xrealloc(text, room *= 2);
    }
    if (more <= 0)
        text[have] = 0;
    close(file);
    free(path);
    return text;
}

/* Sets a flag on the pipe that the owner can see (/proc/PID/fdinfo): it presses no key while a text is evaluated. */
static void set_evaluating(int is)
{
    is_evaluating = is;
    fcntl(pipe_fd, F_SETFL, O_NONBLOCK | (is ? O_APPEND : 0));
}

/* Handles the key with which the owner runs a command: replaces the current line, and an unfinished command of several
 * lines, by a call of this builtin. */
static int enter_call(int count, int key)
{
    (void)count;
    if (getpid() != shell || is_evaluating)
        return 0;
    if (current_prompt_string != ps1_prompt) {
        is_our_status = 1; /* a discarded line has no status of its own */
        rl_stuff_char(key);
        rl_cleanup_after_signal();
        throw_to_top_level();
    }
    /* A command may have defined an alias or function of this name, or disabled the builtin. */
    remove_alias(name);
    unbind_func(name);
    struct builtin *entry = builtin_address_internal(name, 1);
    if (entry)
        entry->flags |= BUILTIN_ENABLED;
    rl_delete_text(0, rl_end);
    rl_point = 0;
    rl_insert_text(" ");
    rl_insert_text(name);
    return rl_newline(1, key);
}

/* Handles the key with which the owner asks for the environment: writes every variable with a NUL after it, and another
 * NUL at the end. The owner has emptied the file before. */
static int write_exports(int count, int key)
{
    (void)count, (void)key;
    if (getpid() != shell || exports < 0)
        return 0;
    size_t length = 0;
    maybe_make_export_env();
    for (char **variable = export_env; *variable; variable++)
        length += strlen(*variable) + 1;
    char *all = xmalloc(length + 1), *end = all;
    for (char **variable = export_env; *variable; variable++)
        end = stpcpy(end, *variable) + 1;
    *end = 0;
    /* If a limit on file sizes is exceeded, the write must fail instead of killing the shell. */
    struct sigaction ignored = {.sa_handler = SIG_IGN}, before;
    sigaction(SIGXFSZ, &ignored, &before);
    size_t written = 0;
    while (written <= length) {
        ssize_t more = pwrite(exports, all + written, length + 1 - written, written);
        if (more <= 0)
            break;
        written += more;
    }
    sigaction(SIGXFSZ, &before, NULL);
    free(all);
    return 0;
}

static int report_again(int count, int key);

static const char *const keymaps[] = {"emacs", "vi-insert", "vi-command"};
enum { KEYMAPS = sizeof keymaps / sizeof *keymaps };

/* Binds the two keys for requests of the owner. Nothing else uses these sequences, so it is enough to bind them once,
 * and again after the start-up files. */
static void bind_request_keys(void)
{
    for (int i = 0; i < KEYMAPS; i++) {
        void *keymap = rl_get_keymap_by_name(keymaps[i]);
        rl_bind_keyseq_in_map("\\e[7717~", report_again, keymap);
        rl_bind_keyseq_in_map("\\e[7718~", write_exports, keymap);
    }
}

/* Installs the entry of PROMPT_COMMAND and the run key, which a command may have replaced. */
static void install_hooks(void)
{
    bind_array_variable("PROMPT_COMMAND", HOOK_INDEX, hook, ASS_FORCE);
    for (int i = 0; i < KEYMAPS; i++)
        rl_bind_key_in_map(RUN_KEY, enter_call, rl_get_keymap_by_name(keymaps[i]));
    /* Also after the first key of a two-key sequence. */
    rl_bind_keyseq_in_map("\\e\\C-^", enter_call, rl_get_keymap_by_name("emacs"));
    rl_bind_keyseq_in_map("\\C-x\\C-^", enter_call, rl_get_keymap_by_name("emacs"));
}

static void forget_left(void)
{
    free(left.last_word);
    if (left.pipestatus)
        array_dispose(left.pipestatus);
    memset(&left, 0, sizeof left);
}

static void save_left(void)
{
    const char *last_word = get_string_value("_");
    forget_left();
    left.last_word = last_word ? strdup(last_word) : NULL;
    left.pipestatus = save_pipestatus_array();
    left.builtin = this_shell_builtin;
}

static void restore_left(void)
{
    if (left.last_word)
        bind_variable("_", left.last_word, 0);
    if (left.pipestatus)
        restore_pipestatus_array(left.pipestatus);
    if (left.builtin)
        this_shell_builtin = left.builtin;
    left.pipestatus = NULL;
    forget_left();
}

/* Runs after the evaluation: at the end of the text, or when bash is thrown back to its prompt. Frees `text`. */
static int leave(void *text)
{
    if (getpid() != shell)
        return 0;
    set_evaluating(0);
    save_left();
    /* Only now, because `fc` counts history entries, and the present command must not be among them. */
    if (text && remember_on_history)
        check_add_history(text, 1);
    free(text);
    /* After a Ctrl-C the status is known here. After other failures bash sets it only at its prompt, and until then
     * it is an old one. */
    if (code < 0 && last_command_exit_value > 128 && last_command_exit_value != status)
        code = last_command_exit_value;
    if (code >= 0) {
        status = code;
        is_our_status = 1;
        report_end();
    }
    install_hooks();
    return 0;
}

static int run(void)
{
    if (is_evaluating)
        return EXECUTION_SUCCESS;
    is_our_status = !begin(); /* without a command, $? does not change */
    if (is_our_status)
        return EXECUTION_SUCCESS;
    char *text = command();
    begin_unwind_frame(name);
    add_unwind_protect(leave, text && strlen(text) <= HISTORY_MAX ? strdup(text) : NULL);
    set_evaluating(1);
    restore_left();
    last_command_exit_value = status;
    code = text ? evalstring(text, "eval", SEVAL_NOHIST) : EXECUTION_FAILURE;
    run_unwind_frame(name);
    /* Not the exit code of the text: with `set -e` that would end the shell. */
    return EXECUTION_SUCCESS;
}

/* Runs at every prompt: reports the end of the start-up or of a text that bash has aborted, and stores the status of a
 * typed command. */
static void at_prompt(void)
{
    if (!is_our_status) {
        status = last_command_exit_value;
        forget_left();
    }
    is_our_status = 0;
    if (is_running) {
        if (code < 0)
            code = status;
        report_end();
    }
}

/* Handles the key with which the owner asks for a missing report: on Ctrl-C, Linux discards output that the terminal
 * has not delivered. */
static int report_again(int count, int key)
{
    (void)count, (void)key;
    if (getpid() != shell || is_evaluating)
        return 0;
    if (is_running)
        at_prompt();
    else
        report_end();
    return 0;
}

/* Moves a descriptor to a number that no script closes by accident, and marks it close-on-exec. */
static int moved(int low)
{
    int high = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, HIGH_FD);
    if (low >= 0 && high < 0)
        high = fcntl(low, F_DUPFD_CLOEXEC, LOW_FD);
    if (low >= 0)
        close(low);
    return high;
}

static int opened(const char *path, int flags)
{
    int fd = moved(open(path, flags | O_CLOEXEC));
    if (fd < 0)
        builtin_error("%s: %s", path, strerror(errno));
    return fd;
}

/* Returns the descriptor that the launcher has opened for this path, or opens the path. */
static int inherited(const char *path)
{
    char link[32], target[4096];
    for (int fd = 3; fd < LOW_FD; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, target, sizeof target - 1);
        target[length > 0 ? length : 0] = 0;
        if (strcmp(target, path) == 0)
            return moved(fd);
    }
    return moved(open(path, O_WRONLY | O_CLOEXEC));
}

static int prepare(WORD_LIST *words)
{
    char *path;
    if (!words || !words->next || !words->next->next || shell)
        return EX_USAGE;
    directory = strdup(words->word->word);
    user = encoded(words->next->word->word);
    machine = encoded(words->next->next->word->word);
    if (!directory || asprintf(&path, "%s/pipe", directory) < 0)
        return EXECUTION_FAILURE;
    pipe_fd = opened(path, O_RDONLY | O_NONBLOCK);
    terminal = opened("/dev/tty", O_WRONLY | O_NOCTTY);
    free(path);
    if (pipe_fd < 0 || terminal < 0)
        return EXECUTION_FAILURE;
    if (asprintf(&path, "%s/exports", directory) >= 0) {
        exports = inherited(path);
        free(path);
    }
    shell = getpid();
    /* Orphaned processes become children of the shell, so that the owner finds them when it closes the shell. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    install_hooks();
    bind_request_keys();
    begin();
    return EXECUTION_SUCCESS;
}

static int sb(WORD_LIST *words)
{
    const char *word = words ? words->word->word : "";
    if (strcmp(word, "prepare") == 0)
        return prepare(words->next);
    if (getpid() != shell)
        return EXECUTION_FAILURE;
    if (!words)
        return run();
    if (strcmp(word, "hold") == 0) {
        install_hooks();
        bind_request_keys();
    } else if (strcmp(word, "prompt") == 0 && !is_evaluating)
        at_prompt();
    return EXECUTION_SUCCESS;
}

static char *const documentation[] = {"Runs the command that the sandbox has for this shell.", NULL};

__attribute__((visibility("default"))) struct builtin __sb_struct = {
    name, sb, BUILTIN_ENABLED, documentation, name, NULL,
};
