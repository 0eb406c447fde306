/*
 * The switch on x86-64, System V ABI: a function call need keep only these registers. The floating
 * point control words are never changed by kernels and not kept.
 */
#include <cstdint>

#include "shim/fiber.h"

extern "C" void shim_switch_stack(void **ret_place, void *to);

asm(".text\n"
    ".globl shim_switch_stack\n"
    ".hidden shim_switch_stack\n"
    ".type shim_switch_stack, @function\n"
    "shim_switch_stack:\n"
    "    pushq %rbp\n"
    "    pushq %rbx\n"
    "    pushq %r12\n"
    "    pushq %r13\n"
    "    pushq %r14\n"
    "    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n"
    "    popq %r14\n"
    "    popq %r13\n"
    "    popq %r12\n"
    "    popq %rbx\n"
    "    popq %rbp\n"
    "    ret\n"
    ".size shim_switch_stack, . - shim_switch_stack\n");

namespace shim
{
/* Six registers and the address to return to; a function starts with its stack at 16 n + 8, as
 * behind a call, hence the empty word above. */
void *place_new(char *stack, size_t stack_bytes, void (*entry)(void))
{
    constexpr int n_registers = 6;
    void **top = reinterpret_cast<void **>(stack + stack_bytes);

    *--top = nullptr;
    *--top = reinterpret_cast<void *>(entry);
    for (int i = 0; i < n_registers; i++) {
        *--top = nullptr;
    }
    return top;
}

void place_switch(void **ret_place, void *to)
{
    shim_switch_stack(ret_place, to);
}
} // namespace shim
