// expect: cpp-hidden:5
// Code from another file.
#include <dlfcn.h>
void* f() {
    return dlopen("libother.so", RTLD_NOW);
}
