"""The harness put to the test: planted bugs and the hunts for them, the base line of random kills, fio's
judgement of the fault layer, and the doctor.
"""
