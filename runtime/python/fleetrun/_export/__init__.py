"""`fleetrun export`: a job's events and curves for TensorBoard and OpenTelemetry.

records   what a job has left in its folder, read again and again while it runs
command   the command line
tensorboard_files, otlp   each writes records by its own library, which is loaded when it is asked for
"""
