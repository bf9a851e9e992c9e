# SPDX-License-Identifier: MIT
cmake_minimum_required(VERSION 3.25)
project(embed LANGUAGES C)
find_package(weir REQUIRED)
add_executable(embed embed.c)
target_link_libraries(embed PRIVATE weir::weir)
