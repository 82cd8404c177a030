"""The one exception whose message is written for the person at the keyboard."""


class UserError(Exception):
    """Bad input: names the option, the value and what is allowed.

    The command line prints it as one line on stderr and exits with code 2, without a traceback.
    Library callers can catch it like any other exception.
    """
