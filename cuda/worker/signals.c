/*
 * When a rank dies, its launcher ends the others by SIGTERM; and MPI's own start and end wait
 * without a limit for ranks that do not come. Either way a rank must say why it ends. Handlers
 * write a fixed text and leave: nothing else is safe in them.
 */
#include "signals.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static void say(const char *text)
{
    ssize_t n = write(STDERR_FILENO, text, strlen(text));

    (void)n;
    _exit(1);
}

static void on_end(int signal_number)
{
    (void)signal_number;
    say("skrull-worker: ended by SIGTERM: another data rank failed, or the launcher was stopped\n");
}

static void on_alarm(int signal_number)
{
    (void)signal_number;
    say("skrull-worker: not all data ranks came to the start or end of MPI within "
        "--exchange-timeout-ms\n");
}

static void silent_end(int signal_number)
{
    (void)signal_number;
    _exit(1);
}

static void handle(int signal_number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};

    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(signal_number, &action, NULL);
}

void signals_catch(void)
{
    handle(SIGTERM, on_end);
    handle(SIGALRM, on_alarm);
}

/* Only where they are caught. */
static void handle_both(void (*handler)(int))
{
    struct sigaction now;

    if (sigaction(SIGALRM, NULL, &now) == 0 && now.sa_handler != SIG_DFL) {
        handle(SIGTERM, handler);
        handle(SIGALRM, handler == SIG_DFL ? silent_end : handler);
    }
}

void signals_saying(void)
{
    handle_both(SIG_IGN);
}

void signals_said(void)
{
    handle_both(SIG_DFL);
}

void signals_alarm(uint64_t ms)
{
    (void)alarm((unsigned)((ms + 999) / 1000));
}
