"""Types that everything else uses: errors, the values of trials and golden runs with their JSON form, seeds
and paths. No behaviour of a target, no judgement.
"""
