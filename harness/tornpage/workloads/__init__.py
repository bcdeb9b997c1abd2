"""What a target executes: the script language and the generators that write scripts from a seed. The
campaigns that name them are in the checkout's workloads/.
"""
