// Declares no more than is mentioned by c10d's header: see c10d.cpp.
#pragma once
