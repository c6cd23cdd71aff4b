"""The datasets: one per file, called by the file's name, each with one function `load(place, ...)`."""
