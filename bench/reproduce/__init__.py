"""Tables and figures of papers, measured again (`bench reproduce`): a folder for each paper, and the page of all."""
