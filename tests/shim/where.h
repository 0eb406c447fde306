/* The line of a call in a kernel: a last parameter `where at = where()` fills itself in. */
#pragma once

namespace shim
{
struct where {
    const char *file;
    int line;

    constexpr where(const char *file_ = __builtin_FILE(), int line_ = __builtin_LINE())
        : file(file_), line(line_)
    {
    }
};
} // namespace shim
