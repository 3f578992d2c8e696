import sys; sys.path.insert(0,'/tmp')
import dbgplugin
from tests.rounds.test_any_round import *
