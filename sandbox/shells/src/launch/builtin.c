/* The builtin `__sb`, by which a sandbox shell runs its commands and tells how they end. init.bash loads it.
 *
 * How a command runs: the owner writes its text to the file `command` and two secrets to the pipe
 * ("S;number;nonce" and "E;number;nonce", of one length each), and presses a key, on which we enter the line
 * ` __sb`. That takes both, prints the first as the start marker, evaluates the text as `eval` would, at top
 * level, and prints the second as the end marker, with what the shell knows about itself. The secrets are in no
 * variable, and no program that the shell starts inherits the pipe, which has no name by then.
 *
 * When Ctrl-C throws bash back to its prompt, evaluating does not return to us, but bash then undoes what
 * it has begun, and calls `leave` for that. `__sb prompt` is an entry of PROMPT_COMMAND, the last one, since
 * `PROMPT_COMMAND=...` replaces only the first. Two more keys are the owner's questions: on one we tell the last end
 * again, on the other we write the environment of programs to a file that was opened at the start, if need be by
 * the launcher of a confined shell. Nothing is run for either.
 *
 * All this could be written in bash, and was: it took most of bash's time for a command, and every option
 * and trap of the user had to be kept from showing or disturbing it. Here there is nothing to see for them but
 * the name, before the start marker: in no command's output.
 *
 * Known limit: when line editing is turned off (`set +o emacs`) by something that a text calls, bash reads
 * the rest of the text from the terminal. The owner sees that and interrupts it. Where the text itself
 * says so, it is a file that bash reads, which has no such effect. */

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

/* What we use of bash. It is part of what bash gives to loadable builtins. */
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
extern void *this_shell_builtin; /* what ran last; `exit` asks that */

extern void *xmalloc(size_t);
extern void *xrealloc(void *, size_t);
extern int evalstring(char *text, const char *name, int flags); /* frees the text */
extern char *get_string_value(const char *variable);
extern void *bind_variable(const char *name, char *value, int flags);
extern void *bind_array_variable(char *name, intmax_t index, char *value, int flags);
extern int check_add_history(char *line, int force);
extern void *save_pipestatus_array(void);
extern void restore_pipestatus_array(void *); /* keeps what it is given */
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
extern int rl_stuff_char(int key); /* puts it before what is typed next */
extern void rl_cleanup_after_signal(void);
extern void throw_to_top_level(void); /* gives up what is being read, as a Ctrl-C does */
extern char *current_prompt_string, *ps1_prompt; /* at the prompt for a new command they are one */

enum {
    HIGH_FD = 1000,  /* above all that scripts close to be sure */
    LOW_FD = 10,     /* for shells that may have few */
    SECRET = 55,     /* "S;", 20 digits, ";", 32 digits */
    NONCE = 23,      /* where the 32 digits begin */
    HOOK_INDEX = 7717,
    RUN_KEY = 0x1e,  /* Ctrl-^ */
    HISTORY_MAX = 4096,
    LONGEST_PLACE = 16 * 1024, /* half of what the recorder takes for a marker */
};
static char hook[] = "__sb prompt";
static char name[] = "__sb"; /* of the builtin, and of what bash undoes for it */

static pid_t shell; /* the only process that may speak: a subshell has a copy of all this */
static int pipe_fd = -1, terminal = -1, exports = -1;
static char *directory, *user, *host;

static char start_secret[SECRET + 1], end_secret[SECRET + 1]; /* of the latest command; empty: none */
static char ahead[SECRET + 1]; /* the start of the next one, if it came to light too early */
static int is_running;    /* a start was told, and its end was not */
static int is_evaluating; /* inside the text */
static int code = -1;     /* how it has ended, once that is known */

static int status;        /* what $? shall be for the next text */
static int is_our_status; /* $? at the prompt is of the builtin, not of what somebody has typed */
/* What a text leaves to the next one, and what we would spoil. */
static struct {
    char *last_word; /* $_ */
    void *pipestatus, *builtin;
} left;

/* Prints to the terminal, whatever the shell's own output has been redirected to. In one piece: others may
 * print, too. */
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

/* The next secret that lies in the pipe. */
static int take(char *secret)
{
    if (ahead[0]) {
        memcpy(secret, ahead, sizeof ahead);
        ahead[0] = 0;
        return 1;
    }
    ssize_t length;
    do
        length = read(pipe_fd, secret, SECRET);
    while (length < 0 && errno == EINTR);
    secret[length == SECRET ? SECRET : 0] = 0;
    return length == SECRET;
}

static int is_end_of(const char *secret, const char *start)
{
    return secret[0] == 'E' && memcmp(secret + 1, start + 1, NONCE - 1) == 0;
}

/* Tells the start of the next command: the last that has both secrets. What lies before it was of others, which
 * the owner has replaced or given up. */
static int begin(void)
{
    char start[SECRET + 1] = "", secret[SECRET + 1];
    int is_found = 0;
    while (take(secret)) {
        if (secret[0] == 'S')
            memcpy(start, secret, sizeof secret);
        if (!is_end_of(secret, start))
            continue;
        memcpy(start_secret, start, sizeof start);
        memcpy(end_secret, secret, sizeof secret);
        is_found = 1;
    }
    if (!is_found)
        return 0;
    is_running = 1;
    code = -1;
    char marker[SECRET + 10];
    snprintf(marker, sizeof marker, "\033]7717;%s\a", start_secret);
    print(marker);
    return 1;
}

/* A copy with what would end or split a marker percent-encoded. */
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

/* The path of the Python that the shell would run, or an empty one. It is searched anew when PATH has changed,
 * when the one found has gone, and as long as there is none. */
static const char *python(void)
{
    static char *searched, *found;
    const char *path = get_string_value("PATH");
    if (!path)
        path = "";
    if (!searched || !found || strcmp(searched, path) != 0 || access(found, X_OK) != 0) {
        free(searched);
        free(found);
        searched = found = NULL; /* a Ctrl-C may throw bash out of the search */
        found = find_user_command("python");
        if (!found)
            found = find_user_command("python3");
        searched = strdup(path);
    }
    return found && found[0] == '/' ? found : "";
}

/* The directory by the name that the shell has for it, unless a command has changed that without going there, or
 * it means another directory to others (/proc/self). Empty if it is too long to be told. */
static char *place(void)
{
    const char *pwd = get_string_value("PWD");
    struct stat named, here;
    int is_right = pwd && pwd[0] == '/' && strncmp(pwd, "/proc/", 6) != 0 && stat(pwd, &named) == 0 &&
                   stat(".", &here) == 0 && named.st_dev == here.st_dev && named.st_ino == here.st_ino;
    char *path = is_right ? NULL : getcwd(NULL, 0);
    char *copy = encoded(path ? path : pwd ? pwd : "");
    free(path);
    if (strlen(copy) > LONGEST_PLACE)
        copy[0] = 0;
    return copy;
}

/* Tells the end of the command, which has ended with `code`; or tells it again. */
static void tell_end(void)
{
    /* The owner sends another secret when it believes the first lost; then only that counts. */
    char secret[SECRET + 1];
    while (take(secret)) {
        if (secret[0] == 'S') {
            memcpy(ahead, secret, sizeof secret);
            break;
        }
        if (is_end_of(secret, start_secret))
            memcpy(end_secret, secret, sizeof secret);
    }
    if (!end_secret[0])
        return;
    char pid[16] = "";
    if (last_asynchronous_pid > 0)
        snprintf(pid, sizeof pid, "%ld", (long)last_asynchronous_pid);
    char *cwd = place(), *interpreter = encoded(python()), *marker;
    if (asprintf(&marker, "\033]7717;%s;%d;%s;%s;%s;%s;%s\a", end_secret, code, pid, user, host, cwd,
                 interpreter) >= 0) {
        is_running = !print(marker);
        free(marker);
    }
    free(cwd);
    free(interpreter);
}

/* The text that lies ready: what the file holds up to a NUL. */
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

/* The owner can see a flag of the pipe (/proc/PID/fdinfo), and presses no key while a text is evaluated. */
static void set_evaluating(int is)
{
    is_evaluating = is;
    fcntl(pipe_fd, F_SETFL, O_NONBLOCK | (is ? O_APPEND : 0));
}

/* The key by which the owner runs a command: enters our call in place of what is on the line, and of the lines
 * before it, if somebody has left a command unfinished. */
static int press(int count, int key)
{
    (void)count;
    if (getpid() != shell || is_evaluating)
        return 0;
    if (current_prompt_string != ps1_prompt) {
        is_our_status = 1; /* what is given up has no status of its own */
        rl_stuff_char(key);
        rl_cleanup_after_signal();
        throw_to_top_level();
    }
    /* The name is ours, whatever a command has made of it. */
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

/* The key by which the owner asks for the environment: every variable with a NUL after it, and another NUL. The
 * owner has emptied the file. */
static int tell_exports(int count, int key)
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
    /* A limit on the size of files is an error for us, and no reason to die. */
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

static int tell_again(int count, int key);

static const char *const keymaps[] = {"emacs", "vi-insert", "vi-command"};
enum { KEYMAPS = sizeof keymaps / sizeof *keymaps };

/* The keys that are sequences: nobody else has them, so that they are bound once, and again after start-up files. */
static void bind_questions(void)
{
    for (int i = 0; i < KEYMAPS; i++) {
        void *keymap = rl_get_keymap_by_name(keymaps[i]);
        rl_bind_keyseq_in_map("\\e[7717~", tell_again, keymap);
        rl_bind_keyseq_in_map("\\e[7718~", tell_exports, keymap);
    }
}

/* Takes the prompt and the key, which a command may have given to others. */
static void take_hold(void)
{
    bind_array_variable("PROMPT_COMMAND", HOOK_INDEX, hook, ASS_FORCE);
    for (int i = 0; i < KEYMAPS; i++)
        rl_bind_key_in_map(RUN_KEY, press, rl_get_keymap_by_name(keymaps[i]));
    /* Also where somebody has begun to press another. */
    rl_bind_keyseq_in_map("\\e\\C-^", press, rl_get_keymap_by_name("emacs"));
    rl_bind_keyseq_in_map("\\C-x\\C-^", press, rl_get_keymap_by_name("emacs"));
}

static void forget_left(void)
{
    free(left.last_word);
    if (left.pipestatus)
        array_dispose(left.pipestatus);
    memset(&left, 0, sizeof left);
}

static void keep_left(void)
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

/* The text is over: at its end, or because bash is thrown back to its prompt. `text` is freed. */
static int leave(void *text)
{
    if (getpid() != shell)
        return 0;
    set_evaluating(0);
    keep_left();
    /* Only now, as `fc` counts what it finds. */
    if (text && remember_on_history)
        check_add_history(text, 1);
    free(text);
    /* After a Ctrl-C the status is known; after other failures bash sets it when it is at its prompt, and
     * until then it is an old one. */
    if (code < 0 && last_command_exit_value > 128 && last_command_exit_value != status)
        code = last_command_exit_value;
    if (code >= 0) {
        status = code;
        is_our_status = 1;
        tell_end();
    }
    take_hold();
    return 0;
}

static int run(void)
{
    if (is_evaluating)
        return EXECUTION_SUCCESS;
    is_our_status = !begin(); /* without a command, $? stays what it was */
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
    /* Not the code of the text: with `set -e` that would end the shell. */
    return EXECUTION_SUCCESS;
}

/* At every prompt: tells the end of the start-up or of a text that bash has given up, and remembers the status
 * of what somebody has typed. */
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
        tell_end();
    }
}

/* The key by which the owner asks for a report that it has not heard: with a Ctrl-C the kernel throws away what the
 * terminal has not delivered. */
static int tell_again(int count, int key)
{
    (void)count, (void)key;
    if (getpid() != shell || is_evaluating)
        return 0;
    if (is_running)
        at_prompt();
    else
        tell_end();
    return 0;
}

/* Moves a descriptor to where no script closes it by accident, and no program gets it. */
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

/* What the launcher has opened, or else we can open. */
static int given(const char *path)
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
    host = encoded(words->next->next->word->word);
    if (!directory || asprintf(&path, "%s/pipe", directory) < 0)
        return EXECUTION_FAILURE;
    pipe_fd = opened(path, O_RDONLY | O_NONBLOCK);
    terminal = opened("/dev/tty", O_WRONLY | O_NOCTTY);
    free(path);
    if (pipe_fd < 0 || terminal < 0)
        return EXECUTION_FAILURE;
    if (asprintf(&path, "%s/exports", directory) >= 0) {
        exports = given(path);
        free(path);
    }
    shell = getpid();
    /* What a program leaves behind becomes our child, by which the owner finds it when it ends the shell. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    take_hold();
    bind_questions();
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
        take_hold();
        bind_questions();
    } else if (strcmp(word, "prompt") == 0 && !is_evaluating)
        at_prompt();
    return EXECUTION_SUCCESS;
}

static char *const documentation[] = {"Runs the command that the sandbox has for this shell.", NULL};

__attribute__((visibility("default"))) struct builtin __sb_struct = {
    name, sb, BUILTIN_ENABLED, documentation, name, NULL,
};
