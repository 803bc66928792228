"""The command line: one file a command group, and the only room where strings become objects.

Modules here import nothing heavy at the top: ``gradrank --help`` must not wait for NumPy.
"""
