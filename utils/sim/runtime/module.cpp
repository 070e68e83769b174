// Marks the module as simulated: after its own initialisation it gets `__simulated__ = True` and the name of the mode.
#include <Python.h>

#include <vector>

// binding.cpp's initialisation, renamed by the build.
extern "C" PyObject* sim_inner_PyInit_cuda_extension();

namespace {

int mark(PyObject* module) {
    if (PyModule_AddObjectRef(module, "__simulated__", Py_True) != 0) return -1;
    return PyModule_AddStringConstant(module, "__simulation_mode__", SIM_MODE_NAME);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) PyObject* PyInit_cuda_extension() {
    PyObject* made = sim_inner_PyInit_cuda_extension();
    if (made == nullptr) return nullptr;
    if (PyModule_Check(made)) {
        if (mark(made) == 0) return made;
        Py_DECREF(made);
        return nullptr;
    }
    // Multi-phase initialisation: one more step after the module's own.
    static std::vector<PyModuleDef_Slot> slots;
    if (slots.empty()) {
        auto* definition = reinterpret_cast<PyModuleDef*>(made);
        const PyModuleDef_Slot* slot = definition->m_slots;
        std::vector<PyModuleDef_Slot> after;
        for (; slot && slot->slot; ++slot)
            (slot->slot == Py_mod_exec || slot->slot == Py_mod_create ? slots : after).push_back(*slot);
        slots.push_back({Py_mod_exec, reinterpret_cast<void*>(&mark)});
        slots.insert(slots.end(), after.begin(), after.end());
        slots.push_back({0, nullptr});
        definition->m_slots = slots.data();
    }
    return made;
}
