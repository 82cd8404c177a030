"""Cards of data sets and what is known of each before its file is opened (`spec`); light: no loader is imported."""
