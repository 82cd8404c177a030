"""The two-stage protocol: differentially private uploads, tested by the server before they are aggregated."""
