"""Tests of the harness itself: planted bugs and the search for them, the base line of random kills, fio's
judgement of the fault layer, and the doctor.
"""
