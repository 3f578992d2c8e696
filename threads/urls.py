"""Addresses of the application."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
