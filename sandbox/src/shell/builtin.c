/* The builtin `__sb`, by which a sandbox shell runs its commands and tells how they end. init.bash loads it.
 *
 * How a command runs: the owner writes its text to the file `command` and two secrets to the pipe
 * ("S;number;nonce" and "E;number;nonce", of one length each), and types ` __sb`. We take both, print the
 * first as the start marker, evaluate the text as `eval` would, at top level, and print the second as the
 * end marker, with what the shell knows about itself. The secrets are in no variable, and no program that
 * the shell starts inherits the pipe, which has no name by then.
 *
 * When Ctrl-C throws bash back to its prompt, evaluating does not return to us, but what bash has to undo
 * is undone, and that we are among. `__sb prompt` is an entry of PROMPT_COMMAND, the last one, since
 * `PROMPT_COMMAND=...` replaces only the first. `__sb recover` is bound to a key that the owner presses
 * when it has heard nothing.
 *
 * All this could be written in bash, and was: it took most of a command's time, and every option and trap
 * of the user was to be kept from showing or disturbing it. Here there is nothing to see for them but the
 * name, before the start marker: in no command's output.
 *
 * Known limit: when line editing is turned off (`set +o emacs`) by something that a text calls, bash reads
 * the rest of the text from the terminal. The owner sees that and interrupts it. Where the text itself
 * says so, it is a file that bash reads, which has no such effect. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

extern void *xmalloc(size_t);
extern void *xrealloc(void *, size_t);
extern int evalstring(char *text, const char *name, int flags); /* frees the text */
extern char *get_string_value(const char *variable);
extern void *bind_array_variable(char *name, long index, char *value, int flags);
extern int check_add_history(char *line, int force);
extern char *phash_search(const char *program);
extern void phash_insert(char *program, char *path, int check_dot, int found);
extern char *find_user_command(const char *program);
extern void begin_unwind_frame(char *name);
extern void add_unwind_protect(int (*cleanup)(void *), void *argument);
extern void run_unwind_frame(char *name);
extern void builtin_error(const char *format, ...);

enum {
    PIPE_FD = 62,     /* the owner looks for the pipe there */
    SECRET = 55,      /* "S;", 20 digits, ";", 32 digits */
    NUMBER_END = 23,  /* where the nonce begins */
    HOOK_INDEX = 7717,
    HISTORY_MAX = 4096,
};
static char hook[] = "__sb prompt";
static char frame[] = "__sb";

static int pipe_fd = -1;
static char *directory, *user, *host;

static char start_secret[SECRET + 1], end_secret[SECRET + 1]; /* of the command that runs; empty: none */
static int is_running;    /* a start was told, and its end was not */
static int is_evaluating; /* inside the text */
static int code = -1;     /* how it has ended, once that is known */
static char *said;        /* the last end marker */

static int status;       /* what $? shall be for the next text */
static int is_our_status; /* $? at the prompt is of the builtin, not of what somebody has typed */

/* Prints to the terminal, whatever the shell's own output has been redirected to. */
static void print(const char *bytes)
{
    size_t left = strlen(bytes);
    int terminal = open("/dev/tty", O_WRONLY | O_NOCTTY | O_CLOEXEC);
    while (terminal >= 0 && left > 0) {
        ssize_t written = write(terminal, bytes, left);
        if (written < 0 && errno != EINTR)
            break;
        if (written > 0) {
            bytes += written;
            left -= written;
        }
    }
    if (terminal >= 0)
        close(terminal);
}

/* The next secret that lies in the pipe. */
static int take(char *secret)
{
    ssize_t length;
    do
        length = read(pipe_fd, secret, SECRET);
    while (length < 0 && errno == EINTR);
    secret[length == SECRET ? SECRET : 0] = 0;
    return length == SECRET;
}

static int is_end_of(const char *secret, const char *start)
{
    return secret[0] == 'E' && memcmp(secret + 1, start + 1, NUMBER_END - 1) == 0;
}

/* Tells the start of the next command that has a secret, passing over ends that nobody took. */
static int begin(void)
{
    do
        if (!take(start_secret))
            return 0;
    while (start_secret[0] != 'S');
    if (!take(end_secret) || !is_end_of(end_secret, start_secret))
        end_secret[0] = 0;
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

/* The path of the Python that the shell would run, or an empty one. The shell remembers paths, and forgets
 * them when PATH changes. */
static char *python(void)
{
    static char *names[] = {"python", "python3"};
    static int known; /* which of them was found */
    char *path = phash_search(names[known]);
    if (path && access(path, X_OK) == 0)
        return path;
    free(path);
    for (known = 0; known < 2; known++)
        if ((path = find_user_command(names[known]))) {
            phash_insert(names[known], path, 0, 0);
            return path;
        }
    known = 0;
    return strdup("");
}

/* Tells the end of the command, which has ended with `code`. */
static void finish(void)
{
    status = code;
    bind_array_variable("PROMPT_COMMAND", HOOK_INDEX, hook, ASS_FORCE);
    /* The owner sends another secret when it believes the first lost. */
    char secret[SECRET + 1];
    while (take(secret))
        if (is_end_of(secret, start_secret))
            memcpy(end_secret, secret, sizeof secret);
    if (!end_secret[0])
        return;
    char pid[16] = "";
    if (last_asynchronous_pid > 0)
        snprintf(pid, sizeof pid, "%ld", (long)last_asynchronous_pid);
    const char *pwd = get_string_value("PWD");
    char *path = python(), *place = encoded(pwd ? pwd : ""), *encoded_path = encoded(path);
    free(said);
    if (asprintf(&said, "\033]7717;%s;%d;%s;%s;%s;%s;%s\a", end_secret, code, pid, user, host, place,
                 encoded_path) < 0)
        said = NULL;
    free(path);
    free(place);
    free(encoded_path);
    if (said)
        print(said);
    is_running = 0;
    is_our_status = 1;
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

/* The text is over: at its end, or because a Ctrl-C throws bash back to its prompt. */
static int leave(void *unused)
{
    (void)unused;
    is_evaluating = 0;
    if (code < 0)
        code = last_command_exit_value;
    finish();
    return 0;
}

static int run(void)
{
    if (is_evaluating || !begin())
        return EXECUTION_SUCCESS;
    char *text = command();
    if (text && remember_on_history && strlen(text) <= HISTORY_MAX)
        check_add_history(text, 1);
    begin_unwind_frame(frame);
    add_unwind_protect(leave, NULL);
    is_evaluating = 1;
    last_command_exit_value = status;
    code = text ? evalstring(text, "eval", SEVAL_NOHIST) : EXECUTION_FAILURE;
    run_unwind_frame(frame);
    /* Not the code of the text: with `set -e` that would end the shell. */
    return EXECUTION_SUCCESS;
}

/* At every prompt: tells the end of the start-up, or remembers the status of what somebody has typed. */
static void at_prompt(void)
{
    if (is_running) {
        if (code < 0)
            code = last_command_exit_value;
        finish();
    } else if (!is_our_status)
        status = last_command_exit_value;
    is_our_status = 0;
}

/* What was told is told again: with a Ctrl-C the kernel throws away what the terminal has not delivered. */
static void recover(void)
{
    if (is_running)
        at_prompt();
    else if (said)
        print(said);
}

static int prepare(WORD_LIST *words)
{
    char *path;
    if (!words || !words->next || !words->next->next || pipe_fd >= 0)
        return EX_USAGE;
    directory = strdup(words->word->word);
    user = encoded(words->next->word->word);
    host = encoded(words->next->next->word->word);
    if (!directory || asprintf(&path, "%s/pipe", directory) < 0)
        return EXECUTION_FAILURE;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    pipe_fd = fcntl(fd, F_DUPFD_CLOEXEC, PIPE_FD);
    if (pipe_fd < 0)
        builtin_error("%s: %s", path, strerror(errno));
    free(path);
    if (fd >= 0)
        close(fd);
    if (pipe_fd < 0)
        return EXECUTION_FAILURE;
    begin();
    return EXECUTION_SUCCESS;
}

static int sb(WORD_LIST *words)
{
    const char *word = words ? words->word->word : "";
    if (strcmp(word, "prepare") == 0)
        return prepare(words->next);
    if (!words)
        return run();
    if (strcmp(word, "hook") == 0)
        bind_array_variable("PROMPT_COMMAND", HOOK_INDEX, hook, ASS_FORCE);
    else if (strcmp(word, "prompt") == 0 && !is_evaluating)
        at_prompt();
    else if (strcmp(word, "recover") == 0 && !is_evaluating)
        recover();
    return EXECUTION_SUCCESS;
}

static char *const documentation[] = {"Runs the command that the sandbox has for this shell.", NULL};

__attribute__((visibility("default"))) struct builtin __sb_struct = {
    "__sb", sb, BUILTIN_ENABLED, documentation, "__sb", NULL,
};
