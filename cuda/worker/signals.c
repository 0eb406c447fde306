/*
 * When a rank dies, its launcher ends the others by SIGTERM; and MPI's own start and end wait
 * without a limit for ranks that do not come. Either way a rank must say why it ends. Handlers
 * write a fixed text, stay for a while and leave: nothing else is safe in them. They stay because
 * mpirun takes the first exit after its SIGTERM as the sign to kill the ranks that are left, which
 * may not have seen theirs yet. Linux gives a signal of the process to its first thread, which is
 * the one that trains: while a handler stays, that thread says nothing more.
 */
#include "signals.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Time for the other ranks to be scheduled and speak: what mpirun gives by itself. */
#define STAY_S 1

static void handle(int signal_number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};

    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(signal_number, &action, NULL);
}

/* Nothing is blocked meanwhile, or Linux would look for another thread; a signal that comes before
 * they are ignored has the last word. */
static void ignore_both(void)
{
    handle(SIGTERM, SIG_IGN);
    handle(SIGALRM, SIG_IGN);
}

static void stay_and_leave(int signal_number)
{
    (void)signal_number;
    ignore_both();
    (void)sleep(STAY_S);
    _exit(1);
}

static void say(const char *text)
{
    ssize_t n;

    ignore_both();
    n = write(STDERR_FILENO, text, strlen(text));
    (void)n;
    stay_and_leave(0);
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
        handle(SIGALRM, handler);
    }
}

void signals_saying(void)
{
    handle_both(SIG_IGN);
}

void signals_said(void)
{
    handle_both(stay_and_leave);
}

void signals_alarm(uint64_t ms)
{
    (void)alarm((unsigned)((ms + 999) / 1000));
}
