"""Why a crash breaks a state: the cause, by experiments on the crash."""
