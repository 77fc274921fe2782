"""The service: `evokey serve`. HTTP in front of Memory, with API keys, limits, jobs and a console.

app.py builds the application; routes/ has one file for each kind of thing; all of them call Memory's verbs. Memory is
safe for threads, so every route is a plain function that runs in a pool of threads.
"""
