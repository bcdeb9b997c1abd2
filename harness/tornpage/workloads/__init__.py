"""What a program is made to do: the script language and the generators that write scripts from a seed.
The campaigns that name them lie in the checkout's workloads/.
"""
