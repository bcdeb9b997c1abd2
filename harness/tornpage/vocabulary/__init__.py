"""The words that everything else speaks in: errors, the values of trials and golden runs with their JSON
form, seeds and places in the file system. No behaviour of a target, no judgement.
"""
