"""Tables of other papers and libraries, measured again."""
