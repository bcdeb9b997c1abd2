# Included behind project() of a tree of the engine, whichever version (CMAKE_PROJECT_INCLUDE): its programs tell
# which functions they enter and leave (calls.c). Not told are what is called all the time, and the scanner, a judge.
add_library(tornpage_calls STATIC ${CMAKE_CURRENT_LIST_DIR}/calls.c)
set_target_properties(tornpage_calls PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_compile_options(tornpage_calls PRIVATE -O2)
link_libraries(tornpage_calls)
add_compile_options(-O1 -w -finstrument-functions
                    -finstrument-functions-exclude-file-list=engine/base/,engine/check/)
