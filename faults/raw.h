/** A system call without the C library: for what comes before its functions are found, and in place
of its syscall(). */
#ifndef FAULTS_RAW_H
#define FAULTS_RAW_H

/** The machine is one of those that raw_call() knows. */
#if defined(__x86_64__) || defined(__aarch64__)
#define RAW_CALLS 1
#endif

#ifdef RAW_CALLS
/** @return what the kernel returns: -errno if it failed */
static inline long raw_call(long number, const long words[6])
{
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = words[3];
    register long r8 __asm__("r8") = words[4];
    register long r9 __asm__("r9") = words[5];

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(words[0]), "S"(words[1]), "d"(words[2]), "r"(r10), "r"(r8),
                       "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#else
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = words[0];
    register long x1 __asm__("x1") = words[1];
    register long x2 __asm__("x2") = words[2];
    register long x3 __asm__("x3") = words[3];
    register long x4 __asm__("x4") = words[4];
    register long x5 __asm__("x5") = words[5];

    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#endif
}
#endif

#endif
