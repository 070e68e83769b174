// The last error of the calling thread, and the facts by which Python checks that it loaded the library it expects.
#include <cstdarg>
#include <cstdio>

#include "compare.h"
#include "platform.h"
#include "poison.h"
#include "summary.h"

namespace {
thread_local char last_error[1024] = "";
}

int32_t native_fail(int32_t code, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(last_error, sizeof(last_error), format, arguments);
    va_end(arguments);
    return code;
}

// The sentence left by the last failing call of this thread; empty when none has failed.
NATIVE_API const char* native_last_error() {
    return last_error;
}

// 1 when the library was built with CUDA, 0 for the CPU-only build.
NATIVE_API int32_t native_has_cuda() {
#if defined(NATIVE_CUDA)
    return 1;
#else
    return 0;
#endif
}

// Sizes of the structs shared with Python, so that a mismatch is caught at load time and not as a wrong number.
NATIVE_API void native_abi(int64_t* sizes) {
    sizes[0] = sizeof(Walk);
    sizes[1] = sizeof(Rule);
    sizes[2] = sizeof(Tally);
    sizes[3] = sizeof(Clusters);
    sizes[4] = sizeof(Span);
    sizes[5] = sizeof(Damage);
    sizes[6] = sizeof(Summary);
}
