"""Exceptions whose message is written for the person at the keyboard."""


class UserError(Exception):
    """Bad input: names the option, the value and what is allowed.

    The command line prints it as one line on stderr and exits with code 2, without a traceback.
    Library callers can catch it like any other exception.
    """


class WorkerDied(Exception):
    """The process or machine that was at it is gone: killed, out of memory, cut off. It may be tried again.

    The command line prints it as one line on stderr and exits with code 1, without a traceback.
    """
